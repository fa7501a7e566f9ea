"""The agent, which answers questions. It knows neither Telegram nor SQL.

The names below are enough to use the loop in another bot. `docs/embedding.md` shows how.
"""

from agent.engine.contract import Evidence, OutputContract, Part, Show
from agent.engine.current_draft import CurrentDraft
from agent.engine.errors import (
    AgentError,
    DeadlinePassed,
    LimitReached,
    ModelError,
    ToolError,
)
from agent.engine.llm import LLMService
from agent.engine.loop import (
    AgenticResponse,
    Draft,
    Prefetch,
    generate_agentic_response,
    stream_agentic_response,
)
from agent.engine.messages import (
    LLM,
    LLMRequest,
    LLMResponse,
    Message,
    OutputSchema,
    TokenUsage,
    ToolCall,
    Written,
)
from agent.engine.parsing import ParseResult
from agent.engine.run import Limits, Price, Prompt, PromptRef, Run, Span, Stop, Usage
from agent.engine.tools import Tool, ToolOutput, tool
from agent.engine.wire import Dialect

__all__ = [
    "LLM",
    "AgentError",
    "AgenticResponse",
    "CurrentDraft",
    "DeadlinePassed",
    "Dialect",
    "Draft",
    "Evidence",
    "LLMRequest",
    "LLMResponse",
    "LLMService",
    "LimitReached",
    "Limits",
    "Message",
    "ModelError",
    "OutputContract",
    "OutputSchema",
    "ParseResult",
    "Part",
    "Prefetch",
    "Price",
    "Prompt",
    "PromptRef",
    "Run",
    "Show",
    "Span",
    "Stop",
    "TokenUsage",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "Usage",
    "Written",
    "generate_agentic_response",
    "stream_agentic_response",
    "tool",
]
