// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "engine/chat/jinja/template_run.h"

namespace vitrine::engine::jinja {

/// Filters of lists and dicts: map, select, sort, join and their like. Null where there is no such name.
BuiltinFunction sequenceFilter(std::string_view name);

} // namespace vitrine::engine::jinja
