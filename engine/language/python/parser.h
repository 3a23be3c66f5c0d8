// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The grammar of Python 3.12 files ("The Python Language Reference", section 10). Three things that articles write and
// Python refuses are taken with a note: "f32[]" as an annotation, a def without its colon, positional arguments after
// keyword ones.

#include "engine/language/python/ast.h"
#include "engine/language/python/source.h"

namespace vitrine::engine {

/// A file with its tree.
struct PyText {
    PyFile file;
    PyTree tree;
};

/// The tree keeps views of file.text, which must not move while the tree lives. Throws PyError.
PyTree parsePython(const PyFile& file);

/// One expression, alone in the text.
PyExprPtr parsePythonExpression(const PyFile& file);

} // namespace vitrine::engine
