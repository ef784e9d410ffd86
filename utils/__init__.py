"""What the notebooks share: agreements, figures, explorers, stored results."""

from needle._lazy import contents

__getattr__, __dir__ = contents(__name__, __file__)
