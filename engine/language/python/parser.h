// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The grammar of Python 3.12 files ("The Python Language Reference", section 10). Three things that articles write and
// Python refuses are taken with a note: "f32[]" as an annotation, a def without its colon, positional arguments behind
// keyword ones.

#include "engine/language/python/ast.h"
#include "engine/language/source.h"

namespace vitrine::engine {

/// The tree keeps views of file.text, which must not move while the tree lives. Throws ModError.
PyTree parsePython(const ModFile& file);

/// One expression, alone in the text.
PyExprPtr parsePythonExpression(const ModFile& file);

} // namespace vitrine::engine
