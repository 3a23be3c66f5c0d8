// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a Generator knows of a request: shared by its source files.

#include "engine/generation/active_request.h"

namespace vitrine::engine {

struct Generator::Row : ActiveRequest {
    using ActiveRequest::ActiveRequest;

    int sequence = -1; ///< of the cache
};

} // namespace vitrine::engine
