// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/source.h"

#include <fmt/format.h>

namespace vitrine::engine {

PyError::PyError(PyPlace place, std::string what, std::string excerpt, bool notKnownHere)
    : base::BadInput(fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, what)), place_(std::move(place)),
      what_(std::move(what)), excerpt_(std::move(excerpt)), notKnownHere_(notKnownHere) {}

} // namespace vitrine::engine
