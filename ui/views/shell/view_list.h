// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// All views in the order of the rail. A new view gets its line in view_list.cpp and nowhere else.

#include <vector>

#include "ui/widgets/base/view.h"

namespace vitrine::ui {

struct ViewEntry {
    const char* id;    ///< also of the action "go.ID"
    const char* title; ///< under the icon in the rail
    const char* icon;
    View* (*make)(const ViewServices& context, QWidget* parent);
    const char* pageOf = nullptr; ///< the view whose button in the rail stands for this one too; null: it has its own
};

const std::vector<ViewEntry>& viewEntries();

} // namespace vitrine::ui
