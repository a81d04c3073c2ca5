"""A value of another type is refused in every body: "no" is not false, and "5" is not 5."""

from __future__ import annotations

from typing import get_args

from pydantic import BaseModel, ValidationError

from tests.api.serving import settings_for
from tests.api.test_openapi import routes_of
from ulak import Ulak
from ulak.http.app import Door

WRONG = {bool: ("no", 0, 1), int: ("5", True, 5.0), float: ("5", True)}


def types_in(annotation):
    """The annotation, and all that it is made of: `list[Step] | None` is also Step."""
    return {annotation}.union(*(types_in(one) for one in get_args(annotation)))


def models_in(annotation, seen):
    for one in types_in(annotation):
        if isinstance(one, type) and issubclass(one, BaseModel) and one not in seen:
            seen.add(one)
            for field in one.model_fields.values():
                models_in(field.annotation, seen)
    return seen


def takes(model, name, value):
    try:
        model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value)
    except ValidationError:
        return False
    return True


def test_a_flag_or_a_number_is_not_guessed_from_another_type():
    door, models = Door(Ulak(settings=settings_for())), set()
    for route in routes_of(door.api):
        if route.body_field is not None:
            models_in(route.body_field.field_info.annotation, models)
    assert len(models) > 10
    found = [
        f"{model.__name__}.{name} takes {value!r}"
        for model in models
        for name, field in model.model_fields.items()
        for kind in types_in(field.annotation) & set(WRONG)
        for value in WRONG[kind]
        if not types_in(field.annotation) & {str, object} and takes(model, name, value)
    ]
    assert sorted(found) == []
