"""The classes that models are written with: pydantic's, or prepared ones.

A function whose models the build has prepared does not import pydantic, which with the classes of
the models would be a third of its cold start.
"""

from typing import TYPE_CHECKING

from tollgate.core.prepared_models import ARE_PREPARED

if TYPE_CHECKING or not ARE_PREPARED:
    from pydantic import AfterValidator as AfterValidator
    from pydantic import AliasChoices as AliasChoices
    from pydantic import BaseModel as BaseModel
    from pydantic import BeforeValidator as BeforeValidator
    from pydantic import ConfigDict as ConfigDict
    from pydantic import Discriminator as Discriminator
    from pydantic import Field as Field
    from pydantic import PlainSerializer as PlainSerializer
    from pydantic import PlainValidator as PlainValidator
    from pydantic import RootModel as RootModel
    from pydantic import StringConstraints as StringConstraints
    from pydantic import Tag as Tag
    from pydantic import WithJsonSchema as WithJsonSchema
    from pydantic import model_validator as model_validator
else:
    from tollgate.core import prepared_models as prepared

    BaseModel, RootModel = prepared.PreparedModel, prepared.PreparedRootModel
    ConfigDict, Field = prepared.ConfigDict, prepared.Field
    model_validator = prepared.model_validator
    AfterValidator = AliasChoices = BeforeValidator = Discriminator = prepared.UnreadMark
    PlainSerializer = PlainValidator = StringConstraints = prepared.UnreadMark
    Tag = WithJsonSchema = prepared.UnreadMark
