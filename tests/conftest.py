from hypothesis import settings

settings.register_profile("gate", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("gate")
