"""A client for Mastra servers. Needs the `http` extra: pip install "mastra-rx[http]".

client      MastraClient: agents, workflows, background tasks
agent       Agent: stream, until_idle, approve and decline, resume, observe, network
workflow    Workflow: start, resume, observe
tools       Python functions that an agent may call
http        requests and streams of bytes; the only module that knows the HTTP library
"""

from .agent import Agent
from .client import MastraClient
from .tools import ClientTool
from .workflow import Workflow

__all__ = ["Agent", "ClientTool", "MastraClient", "Workflow"]
