"""What the engines in process with vLLM share: rendering, sampling, tool calls, and the thread that they run in."""
