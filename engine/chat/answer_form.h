// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>

namespace vitrine::engine {

/// How the answers of a model are divided: harmony's are messages in channels, all others are one text.
enum class AnswerForm : std::uint8_t { Plain, Harmony };

} // namespace vitrine::engine
