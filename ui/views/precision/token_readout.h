// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two lines in a fixed place: what both formats say of the token that is looked at.

#include <QWidget>

#include "ui/models/precision/token_words.h"

namespace vitrine::ui {

class TokenReadout final : public QWidget {
    Q_OBJECT

public:
    explicit TokenReadout(QWidget* parent);
    void setWords(const TokenWords& words);
    const TokenWords& words() const { return words_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    TokenWords words_;
};

} // namespace vitrine::ui
