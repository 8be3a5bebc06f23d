from orcast.serve.app import app as app
