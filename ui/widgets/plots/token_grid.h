// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tokens of a row as a monospace text in which every token can be seen: trained ones are underlined, special ones
// framed, neighbours differ in tint, and what the cut loses is struck out under a rule.

#include <QAbstractScrollArea>
#include <functional>

#include "ui/models/finetune/token_lines.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

struct GridTokens {
    std::vector<TokenCell> cells;
    std::vector<TokenKind> kinds;
    std::vector<std::uint8_t> special;

    std::int64_t size() const { return static_cast<std::int64_t>(cells.size()); }
};

class TokenGrid final : public QAbstractScrollArea {
    Q_OBJECT

public:
    static constexpr int kLineHeight = 20;

    explicit TokenGrid(const QString& title, QWidget* parent = nullptr);
    void setTokens(GridTokens tokens);
    const GridTokens& tokens() const { return tokens_; }
    /// What assistive technology says of a token.
    void setSpoken(std::function<QString(std::int64_t)> spoken) { spoken_ = std::move(spoken); }

    std::int64_t currentToken() const { return current_; } ///< -1: none
    void setCurrentToken(std::int64_t token, bool scroll);
    void scrollToToken(std::int64_t token);
    /// First and last token in view, as [first, last).
    std::pair<std::int64_t, std::int64_t> inView() const;
    /// The next token for which `wanted` holds, from the current one on; -1: none.
    std::int64_t findFrom(int direction, const std::function<bool(std::int64_t)>& wanted) const;
    /// The tokens alone as a picture.
    QImage picture(const QSizeF& size, double dpr) const;

signals:
    void tokenHovered(qint64 token); ///< -1: none
    void tokenChosen(qint64 token);  ///< pinned with a click or by the keyboard
    void viewChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void layOut();
    void paintTokens(QPainter& painter, const QSizeF& size, std::size_t firstLine) const;
    void paintPiece(QPainter& painter, const TokenPiece& piece, double y) const;
    void paintCut(QPainter& painter, double y, double width) const;
    std::int64_t tokenAt(QPointF position) const;
    std::size_t firstLine() const;
    int shownLines() const;
    void move(int key, bool runs);

    GridTokens tokens_;
    TokenLines lines_;
    std::int64_t current_ = -1, hovered_ = -1, lost_ = 0;
    double charWidth_ = 7;
    std::function<QString(std::int64_t)> spoken_;
};

} // namespace vitrine::ui
