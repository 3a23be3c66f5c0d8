// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

/// A part of the page: its title in a bar, and below it `content`. `edges` are lines around it (Surface::Edge).
QWidget* titledBox(TextLabel* title, QWidget* content, QWidget* parent, int edges = Surface::Top);

} // namespace vitrine::ui
