// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Python's two ways to format a text.

#include "engine/chat/jinja/template_run.h"

namespace vitrine::engine::jinja {

/// `format % values`: values is a tuple, a dict for "%(name)s", or one value.
Text percentFormat(TemplateRun& run, const Text& format, const Value& values);
/// format.format(...): "{}", "{0}", "{name}", with ".member", "[key]" and a format such as ":>8" or ":.2f".
Text braceFormat(TemplateRun& run, const Text& format, const Call& call);

} // namespace vitrine::engine::jinja
