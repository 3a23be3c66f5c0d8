// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Jinja 2's grammar with the extensions that transformers loads (loop controls, generation blocks).

#include <memory>
#include <string_view>

#include "engine/chat/jinja/ast.h"

namespace vitrine::engine::jinja {

/// Throws BadInput "line L, column C: what".
std::shared_ptr<const Tree> parseTemplate(std::string_view source);

} // namespace vitrine::engine::jinja
