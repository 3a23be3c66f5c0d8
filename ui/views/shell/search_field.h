// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The search field of the tool bar. It looks while one types, goes on with Enter and back with Shift+Enter, and says at
// its right how many places were found. Escape empties it.

#include <QLineEdit>
#include <functional>

#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class SearchField final : public QLineEdit {
    Q_OBJECT

public:
    /// Looks for `text` in what the window shows and returns the hint: "3 of 12", or nothing. `direction` is 0 while
    /// one types, 1 for the next place and -1 for the one before.
    using Finder = std::function<QString(const QString& text, int direction)>;

    SearchField(Finder find, QWidget* parent);

    void setHint(const QString& hint);
    void findAgain(int direction);
    void takeFocus(); ///< with all text selected, so that typing replaces it
    /// In a small window the field is an icon until it is used.
    void setSmall(bool isSmall);

signals:
    void escaped(); ///< the field is empty now and wants to hand its focus on

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    void fit();

    Finder find_;
    TextLabel* hint_;
    QWidget* key_; ///< the key that leads here, in a frame; shown where the hint is empty
    bool small_ = false;
};

} // namespace vitrine::ui
