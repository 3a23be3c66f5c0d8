// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What inspectors of comparisons begin with: one large number and the sentence below it, over whatever the view adds.

#include <QScrollArea>

#include "ui/widgets/base/controls.h"

class QVBoxLayout;

namespace vitrine::ui {

class ResultPanel : public QScrollArea {
public:
    explicit ResultPanel(QWidget* parent = nullptr);

    TextLabel* number() const { return number_; }
    TextLabel* sentence() const { return sentence_; }
    /// Where further widgets go, as children of content().
    QVBoxLayout* column() const { return column_; }
    QWidget* content() const { return content_; }

private:
    Surface* content_;
    QVBoxLayout* column_;
    TextLabel *number_, *sentence_;
};

} // namespace vitrine::ui
