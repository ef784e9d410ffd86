"""What takes long and is stored: experiments, data, locks."""
