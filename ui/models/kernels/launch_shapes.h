// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the kernels of a run were launched, as the run's text gpu.kernels gives it. Pure function.

#include <QString>
#include <cstdint>
#include <map>
#include <string>

namespace vitrine::ui {

/// The first launch of a kernel.
struct LaunchShape {
    QString grid, block, cluster; ///< "132 x 1 x 1"; cluster empty: none
    int registers = 0;
    std::uint64_t sharedBytes = 0, localBytes = 0;
    bool same = true; ///< of all its launches
};

/// By name of the kernel; nothing where the text is damaged.
std::map<std::string, LaunchShape> launchShapes(const std::string& json);

} // namespace vitrine::ui
