"""The agent: it thinks, and knows no Telegram and no SQL.

These names are enough to use the loop in another bot; `docs/agent.md` shows how.
"""

from agent.budget import Ledger, Limits
from agent.contract import Evidence, OutputContract
from agent.errors import AgentError, ModelError, ToolError
from agent.llm import LLMService
from agent.loop import AgenticResponse, generate_agentic_response
from agent.messages import LLM, LLMResponse, Message, ToolCall, Usage
from agent.parsing import ParseResult
from agent.tools.registry import Tool, ToolOutput, tool
from agent.tracing import NO_TRACE, Span, Tracer

__all__ = [
    "LLM",
    "NO_TRACE",
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
    "Span",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "Tracer",
    "Usage",
    "generate_agentic_response",
    "tool",
]
