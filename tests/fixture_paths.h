// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where tests find what they read and start, in the build folder as well as in a bundle (tools/gpu-bundle) that was
// unpacked on another machine. The program's resources are found by base::resourcePath.

#include <string>

namespace vitrine::test {

/// The path of a file or folder of tests/fixtures: "llama". Looks in the folder that the environment variable
/// VITRINE_FIXTURES names, then in tests/fixtures of each folder above this program, then in the tree that it was built
/// from. The first place that has it wins; when none has it, its path in the tree.
std::string fixture(const std::string& relative);

/// The program `vitrine`: the one beside this program (in a bundle), else the one that was built with it.
std::string vitrineProgram();

} // namespace vitrine::test
