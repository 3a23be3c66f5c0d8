// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/scored_text.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kLegendHeight = 24, kTextLine = 21, kTextEdge = 2, kTextFoot = 2;
constexpr int kPartLength = 2000; ///< characters; a part is laid out as a whole

/// Control characters would be laid out as nothing, or as another line.
QString visibleText(QString text) {
    for (QChar& c : text) {
        if (c == QLatin1Char('\n')) {
            c = QChar::LineSeparator;
        } else if (c == QLatin1Char('\t')) {
            c = QLatin1Char(' ');
        } else if (c.category() == QChar::Other_Control) {
            c = QChar(0xFFFD);
        }
    }
    return text;
}

} // namespace

ScoredText::ScoredText(const QString& title, QWidget* parent) : ScrollPlot(title, parent) {}

void ScoredText::setTokens(std::vector<Token> tokens, std::function<QString(int)> spoken) {
    const bool same =
        tokens.size() == tokens_.size() && std::equal(tokens.begin(), tokens.end(), tokens_.begin(),
                                                      [](const Token& a, const Token& b) { return a.text == b.text; });
    tokens_ = std::move(tokens);
    spoken_ = std::move(spoken);
    if (same) { // the same text under another format: the reader keeps the place
        update();
        return;
    }
    current_ = hovered_ = -1;
    makeParts();
    layOut();
    scrollTo({0, 0});
}

void ScoredText::setScale(double largest, bool ends, const QString& what) {
    unit_ = std::max(largest, 1e-12) / kChangeSteps[3];
    ends_ = ends;
    what_ = what;
    update();
}

void ScoredText::setLegendShown(bool shown) {
    if (legend_ != shown) {
        legend_ = shown;
        layOut();
        updateGeometry();
    }
}

void ScoredText::setUsualLines(int lines) {
    if (usualLines_ != lines) {
        usualLines_ = lines;
        layOut();
        updateGeometry();
    }
}

QSize ScoredText::sizeHint() const {
    const double text = usualLines_ * kTextLine + kTextFoot + (legend_ ? kLegendHeight : kTextFoot);
    return {487, usualLines_ > 0 ? static_cast<int>(text) : 180};
}

void ScoredText::makeParts() {
    parts_.clear();
    begins_.assign(tokens_.size(), 0);
    QString text;
    int first = 0;
    const auto close = [&](int last) {
        Part part;
        part.first = first;
        part.last = last;
        part.layout = std::make_unique<QTextLayout>(text);
        parts_.push_back(std::move(part));
        text.clear();
        first = last;
    };
    for (int i = 0; i < tokenCount(); ++i) {
        const QString shown = visibleText(tokens_[static_cast<std::size_t>(i)].text.left(kPartLength));
        begins_[static_cast<std::size_t>(i)] = static_cast<int>(text.size());
        text += shown;
        const bool line = shown.endsWith(QChar::LineSeparator);
        if (line) {
            text.chop(1); // the next part begins a line anyway
        }
        if (line || text.size() >= kPartLength) {
            close(i + 1);
        }
    }
    if (first < tokenCount()) {
        close(tokenCount());
    }
}

void ScoredText::layOut() {
    const double width = std::max(20.0, movingArea(size()).width());
    const QFont font = Theme::instance().font(TypeRole::Body);
    height_ = 0;
    for (Part& part : parts_) {
        part.top = height_;
        part.layout->setFont(font);
        QTextOption option;
        option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
        option.setTextDirection(Qt::LeftToRight); // lines begin at the left, whatever the first letter is
        part.layout->setTextOption(option);
        part.layout->beginLayout();
        double y = 0;
        for (QTextLine line = part.layout->createLine(); line.isValid(); line = part.layout->createLine()) {
            line.setLineWidth(width);
            line.setPosition({0, y + (kTextLine - line.height()) / 2});
            y += kTextLine;
        }
        part.layout->endLayout();
        height_ += std::max(kTextLine, y);
    }
    if (usualLines_ > 0) {
        const double most = height_ + kTextFoot + (legend_ ? kLegendHeight : kTextFoot);
        setMaximumHeight(std::max(minimumHeight(), static_cast<int>(std::ceil(most))));
    }
    contentChanged();
}

QRectF ScoredText::movingArea(const QSizeF& size) const {
    const double top = legend_ ? kLegendHeight : kTextFoot;
    return {kTextAir, top, std::max(1.0, size.width() - kTextAir - kTextEdge - kBarRoom),
            std::max(1.0, size.height() - top - kTextFoot)};
}

QSizeF ScoredText::contentSize(const QSizeF&) const {
    return {1, height_};
}

const ScoredText::Part* ScoredText::partOf(int token) const {
    const auto found =
        std::upper_bound(parts_.begin(), parts_.end(), token, [](int value, const Part& p) { return value < p.last; });
    return found == parts_.end() ? nullptr : &*found;
}

std::vector<QRectF> ScoredText::contentRects(const Part& part, int token) const {
    std::vector<QRectF> rects;
    const auto length = static_cast<int>(part.layout->text().size());
    const int from = std::min(begins_[static_cast<std::size_t>(token)], length);
    const int to = token + 1 < part.last ? begins_[static_cast<std::size_t>(token) + 1] : length;
    for (int at = from; at < to;) {
        const QTextLine line = part.layout->lineForTextPosition(at);
        if (!line.isValid()) {
            break;
        }
        const int stop = std::min(to, line.textStart() + line.textLength());
        const double left = line.cursorToX(at), right = line.cursorToX(std::max(at, stop));
        const double y = part.top + line.y() + (line.height() - kTextLine) / 2;
        rects.emplace_back(std::min(left, right), y + 1, std::abs(right - left), kTextLine - 2);
        at = std::max(stop, at + 1);
    }
    return rects;
}

std::vector<QRectF> ScoredText::rectsOf(int token) const {
    std::vector<QRectF> rects;
    if (const Part* part = partOf(token); part != nullptr && token >= 0) {
        rects = contentRects(*part, token);
        for (QRectF& rect : rects) {
            rect.translate(movingArea(size()).topLeft() - offset());
        }
    }
    return rects;
}

int ScoredText::tokenAt(QPointF position) const {
    if (!movingArea(size()).contains(position)) {
        return -1;
    }
    const QPointF at = toContent(position);
    for (const Part& part : parts_) {
        if (at.y() < part.top || at.y() >= part.top + part.layout->lineCount() * kTextLine) {
            continue;
        }
        const int row = static_cast<int>((at.y() - part.top) / kTextLine);
        const QTextLine line = part.layout->lineAt(row);
        if (at.x() > line.naturalTextWidth()) {
            return -1;
        }
        const int letter = line.xToCursor(at.x(), QTextLine::CursorOnCharacter);
        const auto begin = begins_.begin() + part.first, end = begins_.begin() + part.last;
        const auto next = std::upper_bound(begin, end, letter);
        return next == begin ? -1 : part.first + static_cast<int>(next - begin) - 1;
    }
    return -1;
}

std::pair<int, int> ScoredText::inView() const {
    const double from = offset().y(), to = from + movingArea(size()).height();
    int first = -1, last = 0;
    for (const Part& part : parts_) {
        if (part.top + part.layout->lineCount() * kTextLine <= from || part.top >= to) {
            continue;
        }
        for (int token = part.first; token < part.last; ++token) {
            const std::vector<QRectF> rects = contentRects(part, token);
            if (!rects.empty() && rects.back().bottom() > from + 2 && rects.front().top() < to - 2) {
                first = first < 0 ? token : first;
                last = token + 1;
            }
        }
    }
    return {std::max(0, first), last};
}

void ScoredText::paintPlot(QPainter& painter, const QSizeF& size) const {
    if (tokens_.empty()) {
        return;
    }
    if (legend_) {
        paintLegend(painter, size.width());
    }
    const QRectF area = movingArea(size);
    const QPointF shift = area.topLeft() - offset();
    painter.save();
    painter.setClipRect(area.adjusted(-2, 0, 0, 0));
    for (const Part& part : parts_) {
        const double top = part.top + shift.y(), bottom = top + part.layout->lineCount() * kTextLine;
        if (bottom <= area.top() || top >= area.bottom()) {
            continue;
        }
        for (int token = part.first; token < part.last; ++token) {
            paintToken(painter, part, token, shift);
        }
        painter.setPen(themeTokens().text1);
        part.layout->draw(&painter, QPointF(shift.x(), top), {}, area);
    }
    if (current_ >= 0) {
        paintFrame(painter, current_, 2);
    }
    if (hovered_ >= 0 && hovered_ != current_) {
        paintFrame(painter, hovered_, 1);
    }
    painter.restore();
}

void ScoredText::paintEvent(QPaintEvent* event) {
    ScrollPlot::paintEvent(event);
    if (const std::pair<int, int> now = inView(); now != view_) {
        view_ = now;
        emit viewChanged();
    }
}

void ScoredText::resizeEvent(QResizeEvent* event) {
    layOut();
    ScrollPlot::resizeEvent(event);
}

void ScoredText::changeEvent(QEvent* event) {
    ScrollPlot::changeEvent(event);
    if (event->type() == QEvent::FontChange) {
        layOut();
    }
}

int ScoredText::nextLarge(int direction) const {
    for (int at = current_ + direction; at >= 0 && at < tokenCount(); at += direction) {
        if (std::abs(inUnits(at)) > kLargeChange) {
            return at;
        }
    }
    return -1;
}

void ScoredText::setCurrentToken(int token) {
    current_ = token < tokenCount() ? std::max(-1, token) : -1;
    hovered_ = -1;
    if (const Part* part = current_ < 0 ? nullptr : partOf(current_); part != nullptr) {
        if (const std::vector<QRectF> rects = contentRects(*part, current_); !rects.empty()) {
            reveal({0, rects.front().top(), 1, rects.back().bottom() - rects.front().top()});
        }
    }
    update();
    announce();
    emit tokenShown(current_);
}

QString ScoredText::spoken() const {
    const int token = shownToken();
    return token >= 0 && spoken_ ? spoken_(token) : QString();
}

void ScoredText::mouseMoveEvent(QMouseEvent* event) {
    if (const int token = tokenAt(event->position()); token != hovered_) {
        hovered_ = token;
        update();
        announce();
        emit tokenShown(shownToken());
    }
}

void ScoredText::mousePressEvent(QMouseEvent* event) {
    ScrollPlot::mousePressEvent(event);
    if (const int token = tokenAt(event->position()); token >= 0) {
        setCurrentToken(token);
    }
}

void ScoredText::mouseDoubleClickEvent(QMouseEvent* event) {
    if (const int token = tokenAt(event->position()); token >= 0) {
        emit tokenOpened(token);
    }
}

void ScoredText::leaveEvent(QEvent* event) {
    ScrollPlot::leaveEvent(event);
    hovered_ = -1;
    update();
    emit readoutChanged({});
    emit tokenShown(current_);
}

void ScoredText::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    if ((key == Qt::Key_Left || key == Qt::Key_Right) && tokenCount() > 0) {
        const int direction = key == Qt::Key_Right ? 1 : -1;
        const int next = event->modifiers().testFlag(Qt::ShiftModifier)
                             ? nextLarge(direction)
                             : std::clamp(current_ + direction, 0, tokenCount() - 1);
        if (next >= 0) {
            setCurrentToken(next);
        }
    } else if ((key == Qt::Key_Return || key == Qt::Key_Enter) && current_ >= 0) {
        emit tokenOpened(current_);
    } else if (key == Qt::Key_Escape && current_ >= 0) {
        setCurrentToken(-1);
    } else {
        ScrollPlot::keyPressEvent(event);
    }
}

} // namespace vitrine::ui
