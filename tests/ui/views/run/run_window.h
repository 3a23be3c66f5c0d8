// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The program's window with the Run view open, for tests that type into it and start runs.

#include <QApplication>

#include "ui/views/run/run_view.h"
#include "ui/views/shell/main_window.h"

namespace vitrine::test {

inline ui::RunView* runView(const ui::MainWindow& window) {
    return static_cast<ui::RunView*>(window.view(QStringLiteral("run")));
}

/// Shown and active, 1440 x 900. `runs` outlives the window; sessions go to `folder`.
inline std::unique_ptr<ui::MainWindow> openRunWindow(ui::RunController* runs, const QString& folder) {
    auto window = std::make_unique<ui::MainWindow>(runs, QString());
    window->resize(1440, 900);
    window->show();
    window->openView(QStringLiteral("run"));
    runView(*window)->setSessionFolder(folder);
    QApplication::setActiveWindow(window.get());
    return window;
}

} // namespace vitrine::test
