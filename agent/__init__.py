"""The agent: it thinks, and knows no Telegram and no SQL.

These names are enough to use the loop in another bot; `docs/agent.md` shows how.
"""

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import AgentError, ModelError, ToolError
from agent.engine.limits import Ledger, Limits
from agent.engine.llm import LLMService
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import LLM, LLMResponse, Message, ToolCall, Usage
from agent.engine.parsing import ParseResult
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.tools import Tool, ToolOutput, tool

__all__ = [
    "LLM",
    "AgentError",
    "AgenticResponse",
    "Evidence",
    "LLMResponse",
    "LLMService",
    "Ledger",
    "Limits",
    "Message",
    "ModelError",
    "OutputContract",
    "ParseResult",
    "Run",
    "Span",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "Usage",
    "generate_agentic_response",
    "tool",
]
