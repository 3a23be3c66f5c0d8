// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The page of shortcuts over the window: every row is a button that takes another key.

#include <QWidget>

#include "ui/widgets/base/action_list.h"
#include "ui/widgets/base/controls.h"

class QLineEdit;
class QScrollArea;

namespace vitrine::ui {

class ShortcutsPanel final : public QWidget {
    Q_OBJECT

public:
    ShortcutsPanel(ActionList& actions, QWidget* window);
    void openOver();

signals:
    void keysChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void rebuild();
    void startCapture(QAction* action);
    ActionList& actions_;
    QLineEdit* filter_;
    QScrollArea* area_;
    QAction* capturing_ = nullptr;
    TextLabel* status_;
};

} // namespace vitrine::ui
