from orcast.serve.app import app as app
from orcast.serve.guard import Caps as Caps
