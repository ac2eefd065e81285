"""The OpenAI Realtime wire codec: pure functions and frozen values, without I/O, clock or model constant.

The values of all server events are in :mod:`omni_realtime.protocol.server_events`.
"""

from __future__ import annotations

from omni_realtime.protocol.beta import BetaDialect
from omni_realtime.protocol.capabilities import AudioFormatType, Capabilities, TurnDetectionType
from omni_realtime.protocol.capability_check import check_item
from omni_realtime.protocol.client_events import (
    ClientEvent,
    ConversationItemCreate,
    ConversationItemDelete,
    ConversationItemRetrieve,
    ConversationItemTruncate,
    InputAudioBufferAppend,
    InputAudioBufferClear,
    InputAudioBufferCommit,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
)
from omni_realtime.protocol.decode import DecodeLimits, decode
from omni_realtime.protocol.dialect import Dialect
from omni_realtime.protocol.encode import encode, response_to_wire
from omni_realtime.protocol.errors import ProtocolError
from omni_realtime.protocol.frame import whole_characters
from omni_realtime.protocol.item_encode import item_to_wire
from omni_realtime.protocol.items import (
    Content,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemReference,
    ItemStatus,
    Message,
    OutputAudio,
    OutputText,
)
from omni_realtime.protocol.prompt_template import PromptTemplate
from omni_realtime.protocol.response import ContentPart, Response, ResponseError, ResponseStatus, StatusDetails, StatusReason, Usage
from omni_realtime.protocol.response_settings import ResponseSettings, response_settings
from omni_realtime.protocol.server_events import ErrorEvent, ServerEvent
from omni_realtime.protocol.session_object import (
    FunctionTool,
    FunctionToolChoice,
    MaxOutputTokens,
    Modality,
    SemanticVad,
    ServerVad,
    SessionConfig,
    ToolChoice,
    Transcription,
    TurnDetection,
    to_wire,
)
from omni_realtime.protocol.session_update import default_session, open_session, update_session
from omni_realtime.protocol.transcript import TokenLogprob, Transcript
from omni_realtime.protocol.transcription_session import refuse_other_events

__all__ = [
    "AudioFormatType",
    "BetaDialect",
    "Capabilities",
    "ClientEvent",
    "Content",
    "ContentPart",
    "ConversationItemCreate",
    "ConversationItemDelete",
    "ConversationItemRetrieve",
    "ConversationItemTruncate",
    "DecodeLimits",
    "Dialect",
    "ErrorEvent",
    "FunctionCall",
    "FunctionCallOutput",
    "FunctionTool",
    "FunctionToolChoice",
    "InputAudio",
    "InputAudioBufferAppend",
    "InputAudioBufferClear",
    "InputAudioBufferCommit",
    "InputImage",
    "InputText",
    "Item",
    "ItemReference",
    "ItemStatus",
    "MaxOutputTokens",
    "Message",
    "Modality",
    "OutputAudio",
    "OutputText",
    "PromptTemplate",
    "ProtocolError",
    "Response",
    "ResponseCancel",
    "ResponseCreate",
    "ResponseError",
    "ResponseSettings",
    "ResponseStatus",
    "SemanticVad",
    "ServerEvent",
    "ServerVad",
    "SessionConfig",
    "SessionUpdate",
    "StatusDetails",
    "StatusReason",
    "TokenLogprob",
    "ToolChoice",
    "Transcript",
    "Transcription",
    "TurnDetection",
    "TurnDetectionType",
    "Usage",
    "check_item",
    "decode",
    "default_session",
    "encode",
    "item_to_wire",
    "open_session",
    "refuse_other_events",
    "response_settings",
    "response_to_wire",
    "to_wire",
    "update_session",
    "whole_characters",
]
