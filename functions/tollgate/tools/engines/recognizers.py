"""The only table of engines that recognize text: the codec of each `ocr.engine` in routing.yaml."""

from collections.abc import Mapping
from typing import Final

from tollgate.routing.plugin_sections import OcrEngine
from tollgate.tools.engines.codec import RecognitionCodec
from tollgate.tools.engines.mistral_ocr import MISTRAL_OCR
from tollgate.tools.engines.textract import TEXTRACT

RECOGNIZERS: Final[Mapping[OcrEngine, RecognitionCodec]] = {
    "mistral": MISTRAL_OCR,
    "textract": TEXTRACT,
}
