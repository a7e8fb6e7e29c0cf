"""Pictures of maps: functions on arrays that return matplotlib figures, without global state."""

from lowland.plot.maps import save_figure, scatter_map

__all__ = ["save_figure", "scatter_map"]
