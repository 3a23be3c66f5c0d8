// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/token_text.h"

#include <QHelpEvent>
#include <QMimeData>
#include <QPainter>
#include <QResizeEvent>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextLayout>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kLongLine = 2000;           // a line is laid out as a whole whenever it grows
constexpr float kUnlikely = -0.6931F;     // half
constexpr float kVeryUnlikely = -2.3026F; // a tenth

QString shownToken(QString text) {
    text.replace(QLatin1Char('\n'), QStringLiteral("⏎"));
    text.replace(QLatin1Char(' '), QStringLiteral("␣"));
    return text.toHtmlEscaped();
}

QString probability(double logprob) {
    return shareText(std::exp(logprob));
}

} // namespace

TokenText::TokenText(QWidget* parent) : QPlainTextEdit(parent) {
    setReadOnly(true);
    setUndoRedoEnabled(false);
    setFrameShape(QFrame::NoFrame);
    setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    setFont(Theme::instance().font(TypeRole::Body));
    document()->setDocumentMargin(12);
    viewport()->setMouseTracking(true);
    QScrollBar* bar = verticalScrollBar();
    // The range grows when lines are laid out, which is later than the text comes.
    connect(bar, &QScrollBar::rangeChanged, this, [this, bar] {
        if (following_) {
            bar->setValue(bar->maximum());
        }
    });
    connect(bar, &QScrollBar::actionTriggered, this,
            [this, bar] { following_ = bar->sliderPosition() >= bar->maximum() - 2; });
    connect(&Theme::instance(), &Theme::changed, this, &TokenText::recolor);
    recolor();
}

int TokenText::endPosition() const {
    return document()->characterCount() - 1;
}

void TokenText::clearText() {
    clear();
    marks_.clear();
    sections_.clear();
    softBreaks_.clear();
    lastSeconds_ = 0;
    lineLength_ = 0;
}

void TokenText::recolor() {
    const ThemeTokens& t = themeTokens();
    QPalette colours = palette();
    colours.setColor(QPalette::Base, t.canvas);
    colours.setColor(QPalette::Text, t.text1);
    setPalette(colours);
    for (std::size_t i = 0; i < sections_.size(); ++i) {
        QTextCursor cursor(document());
        cursor.setPosition(sections_[i].head);
        cursor.setPosition(i + 1 < sections_.size() ? sections_[i + 1].head : endPosition(), QTextCursor::KeepAnchor);
        QTextCharFormat format;
        format.setForeground(sections_[i].dimmed ? t.text3 : t.text1);
        cursor.mergeCharFormat(format);
        updateHead(i);
    }
}

void TokenText::insertAtEnd(const QString& text, bool head) {
    const ThemeTokens& t = themeTokens();
    QTextCharFormat format;
    const bool dimmed = !sections_.empty() && sections_.back().dimmed;
    format.setForeground(head ? t.text3 : dimmed ? t.text3 : t.text1);
    format.setFont(Theme::instance().font(head ? TypeRole::Table : TypeRole::Body, head));
    QTextCursor cursor(document());
    cursor.movePosition(QTextCursor::End);
    cursor.insertText(text, format);
}

void TokenText::addSection(const QString& title, bool dimmed) {
    if (!sections_.empty()) {
        insertAtEnd(QStringLiteral("\n\n"), false);
    }
    Section section;
    section.title = title;
    section.dimmed = dimmed;
    section.head = endPosition();
    sections_.push_back(section);
    insertAtEnd(dimmed ? QStringLiteral("▾ ") + title : title, true);
    insertAtEnd(QStringLiteral("\n"), false);
    lineLength_ = 0;
}

QString TokenText::broken(const QString& written, int at) {
    // QTextCursor counts "\r\n" as one character: positions must not depend on that.
    const QString text = written.contains(QLatin1Char('\r')) ? QString(written).remove(QLatin1Char('\r')) : written;
    QString out;
    for (const QChar c : text) {
        out += c;
        lineLength_ = c == QLatin1Char('\n') ? 0 : lineLength_ + 1;
        if (lineLength_ >= kLongLine && !c.isHighSurrogate()) {
            softBreaks_.push_back(at + static_cast<int>(out.size()));
            out += QLatin1Char('\n');
            lineLength_ = 0;
        }
    }
    return out;
}

void TokenText::appendText(const QString& text) {
    insertAtEnd(broken(text, endPosition()), false);
}

void TokenText::appendTokens(std::span<const StreamedToken> tokens) {
    QTextCursor edit(document());
    edit.beginEditBlock();
    QString chunk; // one insertion for many tokens
    const auto flush = [&] {
        if (!chunk.isEmpty()) {
            insertAtEnd(chunk, false);
            chunk.clear();
        }
    };
    for (const StreamedToken& token : tokens) {
        const QString channel = token.channel.isEmpty() ? QStringLiteral("final") : token.channel;
        if (sections_.empty() || sections_.back().channel != channel) {
            flush();
            addSection(channel == QLatin1String("final") ? tr("answer") : channel,
                       channel == QLatin1String("analysis"));
            sections_.back().channel = channel;
        }
        Mark mark;
        mark.begin = endPosition() + static_cast<int>(chunk.size());
        chunk += broken(token.text, mark.begin);
        mark.end = endPosition() + static_cast<int>(chunk.size());
        mark.id = token.id;
        mark.logprob = static_cast<float>(token.logprob);
        mark.milliseconds = static_cast<float>((token.seconds - lastSeconds_) * 1e3);
        mark.likely = token.likely;
        lastSeconds_ = token.seconds;
        marks_.push_back(std::move(mark));
    }
    flush();
    edit.endEditBlock();
    if (!sections_.empty() && sections_.back().folded) {
        setFolded(sections_.size() - 1, true);
    }
    if (following_) {
        verticalScrollBar()->setValue(verticalScrollBar()->maximum());
    }
}

void TokenText::updateHead(std::size_t index) {
    const Section& section = sections_[index];
    if (!section.dimmed) {
        return;
    }
    QTextCursor cursor(document());
    cursor.setPosition(section.head);
    cursor.setPosition(section.head + 1, QTextCursor::KeepAnchor);
    cursor.insertText(section.folded ? QStringLiteral("▸") : QStringLiteral("▾"), cursor.charFormat());
}

void TokenText::setFolded(std::size_t index, bool on) {
    sections_[index].folded = on;
    const int end = index + 1 < sections_.size() ? sections_[index + 1].head : endPosition() + 1;
    QTextBlock block = document()->findBlock(sections_[index].head);
    const int first = block.position();
    for (block = block.next(); block.isValid() && block.position() < end; block = block.next()) {
        block.setVisible(!on);
        block.setLineCount(on ? 0 : std::max(1, block.layout()->lineCount()));
    }
    document()->markContentsDirty(first, end - first);
    updateHead(index);
    // The layout keeps the old height until its size is set again.
    QResizeEvent again(viewport()->size(), QSize());
    resizeEvent(&again);
    viewport()->update();
}

int TokenText::tokenAt(const QPoint& position) const {
    const QTextCursor cursor = cursorForPosition(position);
    int at = cursor.position();
    if (cursorRect(cursor).left() > position.x()) {
        --at; // the cursor stands at the nearer edge of the character
    }
    const auto next = std::upper_bound(marks_.begin(), marks_.end(), at,
                                       [](int value, const Mark& mark) { return value < mark.begin; });
    for (auto found = next; found != marks_.begin();) {
        --found;
        if (found->end > at) {
            return static_cast<int>(found - marks_.begin());
        }
        if (found->begin < found->end) {
            break; // only tokens without text may hide the one that is meant
        }
    }
    return -1;
}

QString TokenText::tokenTip(int token) const {
    const Mark& mark = marks_[static_cast<std::size_t>(token)];
    QString tip = QStringLiteral("<b>%1</b><br>").arg(shownToken(textWithoutSoftBreaks(mark.begin, mark.end)));
    tip += tr("id %1").arg(mark.id);
    if (mark.logprob < 0) {
        tip += tr(", logprob %1 (%2)").arg(QString::number(mark.logprob, 'f', 3), probability(mark.logprob));
    }
    tip += tr(", %1 ms").arg(QString::number(mark.milliseconds, 'f', mark.milliseconds < 10 ? 2 : 0));
    for (const LikelyToken& other : mark.likely) {
        QString text = other.text;
        if (text.isEmpty()) {
            const auto known =
                std::find_if(marks_.begin(), marks_.end(), [&other](const Mark& m) { return m.id == other.id; });
            text = known != marks_.end() ? textWithoutSoftBreaks(known->begin, known->end) : QString();
        }
        tip += QStringLiteral("<br>%1&nbsp;&nbsp;%2&nbsp;&nbsp;%3")
                   .arg(probability(other.logprob))
                   .arg(other.id)
                   .arg(shownToken(text));
    }
    return tip;
}

QString TokenText::textWithoutSoftBreaks(int begin, int end) const {
    QTextCursor cursor(document());
    cursor.setPosition(begin);
    cursor.setPosition(std::min(end, endPosition()), QTextCursor::KeepAnchor);
    QString text = cursor.selectedText();
    auto soft = std::lower_bound(softBreaks_.begin(), softBreaks_.end(), end);
    while (soft != softBreaks_.begin() && *--soft >= begin) {
        text.remove(*soft - begin, 1);
    }
    return text.replace(QChar::ParagraphSeparator, QLatin1Char('\n'));
}

QString TokenText::plainText() const {
    QString text;
    for (const Mark& mark : marks_) {
        text += textWithoutSoftBreaks(mark.begin, mark.end);
    }
    return text;
}

void TokenText::paintEvent(QPaintEvent* event) {
    QPlainTextEdit::paintEvent(event);
    const ThemeTokens& t = themeTokens();
    QPainter painter(viewport());
    QTextBlock block = firstVisibleBlock();
    QRectF area = blockBoundingGeometry(block).translated(contentOffset());
    while (block.isValid() && area.top() < viewport()->height()) {
        if (block.isVisible()) {
            auto mark = std::lower_bound(marks_.begin(), marks_.end(), block.position(),
                                         [](const Mark& m, int at) { return m.end <= at; });
            const int end = block.position() + block.length();
            for (; mark != marks_.end() && mark->begin < end; ++mark) {
                if (mark->logprob > kUnlikely || mark->begin == mark->end) {
                    continue;
                }
                painter.setPen(QPen(mark->logprob < kVeryUnlikely ? t.bad : t.warn, 1,
                                    mark->logprob < kVeryUnlikely ? Qt::SolidLine : Qt::DotLine));
                const int from = std::max(0, mark->begin - block.position());
                const int to = std::min(block.length() - 1, mark->end - block.position());
                for (int at = from; at < to;) {
                    const QTextLine line = block.layout()->lineForTextPosition(at);
                    if (!line.isValid()) {
                        break;
                    }
                    const int stop = std::min(to, line.textStart() + line.textLength());
                    const double y = std::floor(area.top() + line.y() + line.ascent() + 3) + 0.5;
                    painter.drawLine(QPointF(area.left() + line.cursorToX(at), y),
                                     QPointF(area.left() + line.cursorToX(stop) - 1, y));
                    at = std::max(stop, at + 1);
                }
            }
        }
        const double bottom = area.bottom();
        block = block.next();
        area = blockBoundingGeometry(block).translated(contentOffset());
        area.moveTop(bottom);
    }
}

bool TokenText::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int token = tokenAt(help->pos());
        if (token >= 0) {
            QToolTip::showText(help->globalPos(), tokenTip(token), viewport());
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return QPlainTextEdit::viewportEvent(event);
}

void TokenText::mouseReleaseEvent(QMouseEvent* event) {
    QPlainTextEdit::mouseReleaseEvent(event);
    if (textCursor().hasSelection() || event->button() != Qt::LeftButton) {
        return;
    }
    const int head = cursorForPosition(event->pos()).block().position();
    for (std::size_t i = 0; i < sections_.size(); ++i) {
        if (sections_[i].dimmed && sections_[i].head == head) {
            setFolded(i, !sections_[i].folded);
            return;
        }
    }
}

QMimeData* TokenText::createMimeDataFromSelection() const {
    auto* mime = new QMimeData;
    mime->setText(textWithoutSoftBreaks(textCursor().selectionStart(), textCursor().selectionEnd()));
    return mime;
}

} // namespace vitrine::ui
