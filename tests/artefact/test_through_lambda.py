"""The tests of the deployed path once more, on what is deployed and not on its source."""

from tests.functional.test_lambda_api import *  # noqa: F403
from tests.functional.test_lambda_bad_input import *  # noqa: F403
from tests.functional.test_lambda_embeddings import *  # noqa: F403
from tests.functional.test_lambda_errors import *  # noqa: F403
from tests.functional.test_lambda_fallback import *  # noqa: F403
from tests.functional.test_lambda_images import *  # noqa: F403
from tests.functional.test_lambda_speech import *  # noqa: F403
from tests.functional.test_lambda_streams import *  # noqa: F403
from tests.functional.test_lambda_tools import *  # noqa: F403
from tests.functional.test_lambda_transcription import *  # noqa: F403
