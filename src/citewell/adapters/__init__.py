"""One file per engine. Each keeps the promise of a port and knows no policy, nor any other adapter."""
