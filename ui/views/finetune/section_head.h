// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The head of a part of a page, 24 high: a title, what is known of it, and controls at the right.

#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class SectionHead final : public Surface {
    Q_OBJECT

public:
    SectionHead(const QString& title, QWidget* parent);
    void setTitle(const QString& title) { title_->setText(title); }
    void setFacts(const QString& facts) { facts_->setText(facts); }
    void setRight(const QString& text) { right_->setText(text); }
    void addControl(QWidget* control);

private:
    QHBoxLayout* row_;
    TextLabel *title_, *facts_, *right_;
};

} // namespace vitrine::ui
