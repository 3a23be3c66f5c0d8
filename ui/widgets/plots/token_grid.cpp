// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/token_grid.h"

#include <QAccessible>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/plot_widget.h"
#include "ui/widgets/plots/pack_paint.h"

namespace vitrine::ui {

namespace {

constexpr double kTextLeft = 52, kTextRight = 22, kTopAir = 2;
constexpr int kMostColumns = 100;

} // namespace

TokenGrid::TokenGrid(const QString& title, QWidget* parent) : QAbstractScrollArea(parent) {
    setAccessibleName(title);
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
    connect(&Theme::instance(), &Theme::changed, this, [this] { layOut(); });
}

void TokenGrid::setTokens(GridTokens tokens) {
    tokens_ = std::move(tokens);
    current_ = hovered_ = -1;
    lost_ = std::count(tokens_.kinds.begin(), tokens_.kinds.end(), TokenKind::Lost);
    layOut();
    verticalScrollBar()->setValue(0);
    emit viewChanged();
}

void TokenGrid::layOut() {
    charWidth_ = std::max(1.0, textWidth(QStringLiteral("0"), Theme::instance().monoFont(TypeRole::Table)));
    const double room = viewport()->width() - kTextLeft - kTextRight;
    lines_ = TokenLines(tokens_.cells, std::clamp(static_cast<int>(room / charWidth_), 8, kMostColumns));
    verticalScrollBar()->setRange(0, std::max(0, static_cast<int>(lines_.lines().size()) - shownLines()));
    verticalScrollBar()->setPageStep(std::max(1, shownLines()));
    verticalScrollBar()->setSingleStep(1);
    viewport()->update();
}

int TokenGrid::shownLines() const {
    return std::max(1, static_cast<int>((viewport()->height() - kTopAir) / kLineHeight));
}

std::size_t TokenGrid::firstLine() const {
    return static_cast<std::size_t>(std::max(0, verticalScrollBar()->value()));
}

std::pair<std::int64_t, std::int64_t> TokenGrid::inView() const {
    const auto& lines = lines_.lines();
    if (lines.empty()) {
        return {0, 0};
    }
    const std::size_t first = std::min(firstLine(), lines.size() - 1);
    const std::size_t after = first + static_cast<std::size_t>(shownLines());
    return {lines[first].first, after < lines.size() ? lines[after].first : tokens_.size()};
}

void TokenGrid::paintPiece(QPainter& painter, const TokenPiece& piece, double y) const {
    const ThemeTokens& t = themeTokens();
    const auto at = static_cast<std::size_t>(piece.token);
    const double x = std::round(kTextLeft + piece.column * charWidth_);
    const double wide = std::round(kTextLeft + (piece.column + piece.columns) * charWidth_) - x - 1;
    const bool trained = tokens_.kinds[at] == TokenKind::Trained, lost = tokens_.kinds[at] == TokenKind::Lost;
    const bool second = piece.token % 2 == 1, special = tokens_.special[at] != 0;
    if (trained) {
        painter.fillRect(QRectF(x, y + 2, wide, 15), withAlpha(t.accent, second ? 0.13 : 0.21));
        painter.fillRect(QRectF(x, y + 17, wide, 2), trainedColor(false));
    } else if (!special) {
        painter.fillRect(QRectF(x, y + 2, wide, 15), second ? t.band : t.hover);
    }
    if (special) {
        painter.setPen(QPen(trained ? trainedColor(false) : t.line2, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(x + 0.5, y + 2.5, wide - 1, trained ? 16 : 14));
    }
    const QColor ink = lost ? t.warn : trained ? t.text1 : special ? t.text2 : t.text3;
    painter.setFont(Theme::instance().monoFont(TypeRole::Table));
    double column = piece.column;
    for (const uint character : piece.text.toUcs4()) { // one by one: each stands in its column
        const auto code = static_cast<char32_t>(character);
        painter.setPen(code == U'·' || code == U'↵' || code == U'⇥' ? t.line2 : ink);
        painter.drawText(QRectF(kTextLeft + column * charWidth_, y, columnsOf(code) * charWidth_ + 8, kLineHeight),
                         Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine | Qt::TextDontClip,
                         QString::fromUcs4(&code, 1));
        column += columnsOf(code);
    }
    if (lost) {
        hairline(painter, x, x + wide, y + 10, t.warn);
    }
    if (piece.token == current_ || piece.token == hovered_) {
        painter.setPen(QPen(t.text1, piece.token == current_ ? 2 : 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(x - 1, y + 1, wide + 2, 18));
    }
}

void TokenGrid::paintCut(QPainter& painter, double y, double width) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const bool behind = !tokens_.kinds.empty() && tokens_.kinds.front() != TokenKind::Lost;
    const QString text = behind ? tr("cut: %1 tokens behind this line are lost").arg(countText(lost_))
                                : tr("cut: %1 tokens before this line are lost").arg(countText(lost_));
    hairline(painter, kTextLeft, width - 12, y, t.warn);
    const double wide = textWidth(text, font) + 8;
    painter.fillRect(QRectF(width - 12 - wide, y - 6, wide, 13), t.warnFill);
    drawText(painter, QRectF(width - 12 - wide, y - 6, wide, 13), Qt::AlignCenter, text, t.warn, font);
}

void TokenGrid::paintTokens(QPainter& painter, const QSizeF& size, std::size_t first) const {
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const auto& lines = lines_.lines();
    double y = kTopAir;
    for (std::size_t i = first; i < lines.size() && y < size.height(); ++i, y += kLineHeight) {
        const TokenLine& line = lines[i];
        drawText(painter, QRectF(0, y, kTextLeft - 9, kLineHeight), Qt::AlignRight | Qt::AlignVCenter,
                 countText(line.first), t.text3, axis);
        for (const TokenPiece& piece : line.pieces) {
            paintPiece(painter, piece, y);
        }
        const auto begin = static_cast<std::size_t>(line.first);
        const bool lostBefore = begin > 0 && tokens_.kinds[begin - 1] == TokenKind::Lost;
        const bool lostNow = tokens_.kinds[begin] == TokenKind::Lost;
        if (lost_ > 0 && begin > 0 && lostBefore != lostNow) {
            paintCut(painter, y, size.width());
        }
    }
}

QImage TokenGrid::picture(const QSizeF& size, double dpr) const {
    QImage image = plotCanvas(size, dpr, themeTokens().canvas);
    QPainter painter(&image);
    paintTokens(painter, size, 0);
    return image;
}

void TokenGrid::paintEvent(QPaintEvent*) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), themeTokens().canvas);
    paintTokens(painter, viewport()->size(), firstLine());
    if (hasFocus()) {
        painter.setPen(QPen(themeTokens().accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(viewport()->rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
}

void TokenGrid::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    const std::int64_t top = inView().first;
    layOut();
    verticalScrollBar()->setValue(static_cast<int>(lines_.lineOf(top)));
    emit viewChanged();
}

void TokenGrid::scrollContentsBy(int, int) {
    viewport()->update();
    emit viewChanged();
}

void TokenGrid::scrollToToken(std::int64_t token) {
    const auto line = static_cast<int>(lines_.lineOf(token));
    const int first = verticalScrollBar()->value();
    if (line < first || line >= first + shownLines()) {
        verticalScrollBar()->setValue(std::max(0, line - shownLines() / 3));
    }
}

void TokenGrid::setCurrentToken(std::int64_t token, bool scroll) {
    current_ = token < tokens_.size() ? token : -1;
    if (current_ >= 0 && scroll) {
        scrollToToken(current_);
    }
    if (current_ >= 0 && spoken_) {
        setAccessibleDescription(spoken_(current_));
        QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
        QAccessible::updateAccessibility(&changed);
    }
    viewport()->update();
}

std::int64_t TokenGrid::tokenAt(QPointF position) const {
    const auto& lines = lines_.lines();
    const std::size_t line =
        firstLine() + static_cast<std::size_t>(std::max(0.0, (position.y() - kTopAir) / kLineHeight));
    if (position.y() < kTopAir || line >= lines.size()) {
        return -1;
    }
    const double column = (position.x() - kTextLeft) / charWidth_;
    for (const TokenPiece& piece : lines[line].pieces) {
        if (column >= piece.column && column < piece.column + piece.columns) {
            return piece.token;
        }
    }
    return -1;
}

void TokenGrid::mouseMoveEvent(QMouseEvent* event) {
    if (const std::int64_t token = tokenAt(event->position()); token != hovered_) {
        hovered_ = token;
        viewport()->update();
        emit tokenHovered(token);
    }
}

void TokenGrid::mousePressEvent(QMouseEvent* event) {
    const std::int64_t token = tokenAt(event->position());
    if (event->button() == Qt::LeftButton && token >= 0) {
        setCurrentToken(token, false);
        emit tokenChosen(token);
    }
}

void TokenGrid::leaveEvent(QEvent* event) {
    QAbstractScrollArea::leaveEvent(event);
    hovered_ = -1;
    viewport()->update();
    emit tokenHovered(-1);
}

std::int64_t TokenGrid::findFrom(int direction, const std::function<bool(std::int64_t)>& wanted) const {
    for (std::int64_t at = current_ + direction; at >= 0 && at < tokens_.size(); at += direction) {
        if (wanted(at)) {
            return at;
        }
    }
    return -1;
}

void TokenGrid::move(int key, bool runs) {
    const int direction = key == Qt::Key_Left || key == Qt::Key_Up ? -1 : 1;
    std::int64_t next = std::clamp<std::int64_t>(current_ + direction, 0, tokens_.size() - 1);
    if (runs) { // the beginning of the next run of trained tokens
        next = findFrom(direction, [this](std::int64_t at) {
            return tokens_.kinds[static_cast<std::size_t>(at)] == TokenKind::Trained &&
                   (at == 0 || tokens_.kinds[static_cast<std::size_t>(at - 1)] != TokenKind::Trained);
        });
    } else if (key == Qt::Key_Up || key == Qt::Key_Down) {
        const auto line = static_cast<std::int64_t>(lines_.lineOf(std::max<std::int64_t>(0, current_))) + direction;
        const auto last = static_cast<std::int64_t>(lines_.lines().size()) - 1;
        next = lines_.lines()[static_cast<std::size_t>(std::clamp<std::int64_t>(line, 0, last))].first;
    }
    if (next >= 0) {
        setCurrentToken(next, true);
        emit tokenChosen(next);
    }
}

void TokenGrid::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    const bool arrow = key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down;
    const bool control = event->modifiers().testFlag(Qt::ControlModifier);
    if (arrow && tokens_.size() > 0 && (!control || key == Qt::Key_Left || key == Qt::Key_Right)) {
        move(key, control);
    } else if (key == Qt::Key_Escape && current_ >= 0) {
        setCurrentToken(-1, false);
        emit tokenChosen(-1);
    } else {
        event->ignore(); // pages are sequences here, not screens
    }
}

void TokenGrid::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

void TokenGrid::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

void TokenGrid::changeEvent(QEvent* event) {
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::FontChange) {
        layOut();
    }
}

} // namespace vitrine::ui
