"""The agent: it thinks, and knows no Telegram and no SQL.

These names are enough to use the loop in another bot; `docs/embedding.md` shows how.
"""

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import AgentError, DeadlinePassed, LimitReached, ModelError, ToolError
from agent.engine.llm import LLMService
from agent.engine.loop import (
    AgenticResponse,
    Draft,
    generate_agentic_response,
    stream_agentic_response,
)
from agent.engine.messages import (
    LLM,
    LLMRequest,
    LLMResponse,
    Message,
    OutputSchema,
    ToolCall,
    Usage,
)
from agent.engine.parsing import ParseResult
from agent.engine.run import Ledger, Limits, Price, Prompt, PromptRef, Run, Span, Stop
from agent.engine.tools import Tool, ToolOutput, tool

__all__ = [
    "LLM",
    "AgentError",
    "AgenticResponse",
    "DeadlinePassed",
    "Draft",
    "Evidence",
    "LLMRequest",
    "LLMResponse",
    "LLMService",
    "Ledger",
    "LimitReached",
    "Limits",
    "Message",
    "ModelError",
    "OutputContract",
    "OutputSchema",
    "ParseResult",
    "Price",
    "Prompt",
    "PromptRef",
    "Run",
    "Span",
    "Stop",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "Usage",
    "generate_agentic_response",
    "stream_agentic_response",
    "tool",
]
