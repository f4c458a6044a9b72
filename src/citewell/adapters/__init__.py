"""One module or package for each engine. Each implements a port, and imports no other adapter."""
