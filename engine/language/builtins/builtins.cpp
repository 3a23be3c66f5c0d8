// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/builtins/builtins.h"

namespace vitrine::engine {

const BuiltinTable& builtinTable() {
    static const BuiltinTable kTable({{pythonBuiltins()},
                                      {libraryBuiltins()},
                                      {iterationBuiltins()},
                                      {containerBuiltins()},
                                      {stringBuiltins()},
                                      {moduleBuiltins()},
                                      {elementwiseBuiltins(), true},
                                      {angleBuiltins(), true},
                                      {specialBuiltins(), true},
                                      {activationBuiltins(), true},
                                      {constructorBuiltins()},
                                      {reductionBuiltins(), true},
                                      {positionBuiltins(), true},
                                      {viewBuiltins(), true},
                                      {layoutBuiltins(), true},
                                      {tensorBuiltins(), true}});
    return kTable;
}

} // namespace vitrine::engine
