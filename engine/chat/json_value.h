// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/chat/jinja/value.h"

namespace vitrine::engine {

/// JSON as a value of a template. All its texts, keys too, have this origin. Whole numbers beyond 64 bits become real.
jinja::Value templateValue(jinja::Heap& heap, const nlohmann::ordered_json& json, jinja::Origin origin);

} // namespace vitrine::engine
