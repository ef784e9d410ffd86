"""The data, and one law for all features."""

from .classifiers import attention as attention
from .classifiers import gaussian_mixture as gaussian_mixture
from .classifiers import learned_attention as learned_attention
from .classifiers import pooled as pooled
from .dense import dense_features as dense_features
from .law import FeatureLaw as FeatureLaw
from .law import Features as Features
from .law import Nodes as Nodes
from .law import Scores as Scores
from .law import TwoGaussians as TwoGaussians
from .noise import Noise as Noise
from .noise import one as one
from .noise import sample_noise as sample_noise
from .sidebyside import vectorized as vectorized
from .tall import excess as excess
from .tall import excess_weight as excess_weight
from .tall import pooled_tokens as pooled_tokens
from .teachers import teacher as teacher
from .tokens import SparseTokens as SparseTokens
from .tokens import Tokens as Tokens
from .tokens import check_model as check_model
