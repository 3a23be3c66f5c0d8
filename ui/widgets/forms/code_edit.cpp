// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/forms/code_edit.h"

#include <QPainter>
#include <QTextBlock>
#include <algorithm>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/forms/code_colors.h"

namespace vitrine::ui {

namespace {

constexpr int kIndent = 4;

class Gutter final : public QWidget {
public:
    explicit Gutter(CodeEdit* edit) : QWidget(edit), edit_(edit) {}
    QSize sizeHint() const override { return {edit_->gutterWidth(), 0}; }

protected:
    void paintEvent(QPaintEvent* event) override { edit_->paintGutter(event); }

private:
    CodeEdit* edit_;
};

} // namespace

CodeEdit::CodeEdit(QWidget* parent) : QPlainTextEdit(parent), gutter_(new Gutter(this)) {
    setFrameShape(QFrame::NoFrame);
    setLineWrapMode(QPlainTextEdit::NoWrap);
    setAccessibleName(tr("Program"));
    document()->setDocumentMargin(4);
    colors_ = new CodeColors(document());
    restyle();
    placeGutter();
    connect(this, &QPlainTextEdit::blockCountChanged, this, &CodeEdit::placeGutter);
    connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& rect, int scrolled) {
        if (scrolled != 0) {
            gutter_->scroll(0, scrolled);
        } else {
            gutter_->update(0, rect.y(), gutter_->width(), rect.height());
        }
    });
    connect(this, &QPlainTextEdit::textChanged, this, [this] {
        if (!setting_) {
            emit edited();
        }
    });
    connect(&Theme::instance(), &Theme::changed, this, &CodeEdit::restyle);
}

CodeEdit::~CodeEdit() = default;

std::string CodeEdit::text() const {
    return toPlainText().toStdString();
}

void CodeEdit::setText(const std::string& text) {
    const QString wanted = QString::fromStdString(text);
    if (wanted == toPlainText()) {
        return;
    }
    setting_ = true;
    problemBegin_ = problemEnd_ = 0;
    tinted_ = 0;
    QTextCursor cursor(document());
    cursor.beginEditBlock();
    cursor.select(QTextCursor::Document);
    cursor.insertText(wanted);
    cursor.endEditBlock();
    cursor.movePosition(QTextCursor::Start);
    setTextCursor(cursor);
    setting_ = false;
    mark();
}

void CodeEdit::setProblem(qsizetype begin, qsizetype end) {
    problemBegin_ = begin;
    problemEnd_ = end;
    mark();
}

void CodeEdit::showProblem() {
    QTextCursor cursor(document());
    cursor.setPosition(static_cast<int>(std::min<qsizetype>(problemBegin_, document()->characterCount() - 1)));
    setTextCursor(cursor);
    setFocus(Qt::OtherFocusReason);
}

void CodeEdit::setTintedLine(int line, bool blocks) {
    if (line != tinted_ || blocks != tintBlocks_) {
        tinted_ = line;
        tintBlocks_ = blocks;
        mark();
    }
}

void CodeEdit::mark() {
    QList<QTextEdit::ExtraSelection> marks;
    const ThemeTokens& theme = themeTokens();
    if (const QTextBlock block = document()->findBlockByNumber(tinted_ - 1); tinted_ > 0 && block.isValid()) {
        QTextEdit::ExtraSelection line;
        line.cursor = QTextCursor(block);
        line.format.setBackground(withAlpha(tintBlocks_ ? theme.bad : theme.good, 0.14));
        line.format.setProperty(QTextFormat::FullWidthSelection, true);
        marks << line;
    }
    const auto last = static_cast<qsizetype>(document()->characterCount() - 1);
    if (problemBegin_ < problemEnd_ || problemBegin_ > 0) {
        QTextEdit::ExtraSelection problem;
        problem.cursor = QTextCursor(document());
        // What is missing at the end has no characters: its neighbour is underlined.
        const qsizetype end = std::min(std::max(problemEnd_, problemBegin_ + 1), last);
        problem.cursor.setPosition(static_cast<int>(std::min(problemBegin_, std::max<qsizetype>(0, end - 1))));
        problem.cursor.setPosition(static_cast<int>(end), QTextCursor::KeepAnchor);
        problem.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        problem.format.setUnderlineColor(theme.bad);
        marks << problem;
    }
    setExtraSelections(marks);
    gutter_->update();
}

void CodeEdit::restyle() {
    QFont font = Theme::instance().monoFont(TypeRole::Table);
    setFont(font);
    setTabStopDistance(kIndent * QFontMetricsF(font).horizontalAdvance(QLatin1Char(' ')));
    QPalette colors = palette();
    colors.setColor(QPalette::Base, themeTokens().canvas);
    colors.setColor(QPalette::Text, themeTokens().text1);
    setPalette(colors);
    mark();
}

int CodeEdit::gutterWidth() const {
    const auto digits = std::max<qsizetype>(2, QString::number(blockCount()).size());
    return 13 + static_cast<int>(digits) * fontMetrics().horizontalAdvance(QLatin1Char('9'));
}

void CodeEdit::placeGutter() {
    setViewportMargins(gutterWidth(), 0, 0, 0);
    const QRect inside = contentsRect();
    gutter_->setGeometry(inside.left(), inside.top(), gutterWidth(), inside.height());
}

void CodeEdit::paintGutter(QPaintEvent* event) {
    QPainter painter(gutter_);
    const ThemeTokens& theme = themeTokens();
    painter.fillRect(event->rect(), theme.canvas);
    QTextBlock block = firstVisibleBlock();
    double top = blockBoundingGeometry(block).translated(contentOffset()).top();
    for (; block.isValid() && top <= event->rect().bottom(); block = block.next()) {
        const double height = blockBoundingRect(block).height();
        const int line = block.blockNumber() + 1;
        const QRectF row(0, top, gutter_->width(), height);
        if (line == tinted_) {
            painter.fillRect(row, withAlpha(tintBlocks_ ? theme.bad : theme.good, 0.14));
        }
        drawText(painter, row.adjusted(0, 0, -8, 0), Qt::AlignRight | Qt::AlignVCenter, QString::number(line),
                 line == tinted_ ? theme.text2 : theme.text3, font());
        top += height;
    }
}

void CodeEdit::paintEvent(QPaintEvent* event) {
    QPlainTextEdit::paintEvent(event);
    if (hasFocus()) {
        QPainter painter(viewport());
        painter.setPen(QPen(themeTokens().accent, 2));
        painter.drawLine(viewport()->rect().topLeft(), viewport()->rect().bottomLeft());
    }
}

void CodeEdit::resizeEvent(QResizeEvent* event) {
    QPlainTextEdit::resizeEvent(event);
    placeGutter();
}

void CodeEdit::changeEvent(QEvent* event) {
    QPlainTextEdit::changeEvent(event);
    if (event->type() == QEvent::FontChange) {
        placeGutter();
    }
}

void CodeEdit::indent(bool out) {
    QTextCursor cursor = textCursor();
    const QTextBlock last = document()->findBlock(cursor.selectionEnd());
    cursor.beginEditBlock();
    for (QTextBlock block = document()->findBlock(cursor.selectionStart()); block.isValid(); block = block.next()) {
        QTextCursor line(block);
        if (!out) {
            line.insertText(QString(kIndent, QLatin1Char(' ')));
        } else {
            for (int i = 0; i < kIndent && block.text().startsWith(QLatin1Char(' ')); ++i) {
                line.deleteChar();
            }
        }
        if (block == last) {
            break;
        }
    }
    cursor.endEditBlock();
}

void CodeEdit::keyPressEvent(QKeyEvent* event) {
    const bool plain = event->modifiers() == Qt::NoModifier;
    if (event->key() == Qt::Key_Tab && plain) {
        if (textCursor().hasSelection()) {
            indent(false);
        } else {
            const int column = textCursor().positionInBlock();
            insertPlainText(QString(kIndent - column % kIndent, QLatin1Char(' ')));
        }
        return;
    }
    if (event->key() == Qt::Key_Backtab) {
        indent(true);
        return;
    }
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && plain) {
        const QString line = textCursor().block().text();
        qsizetype spaces = 0;
        while (spaces < line.size() && line[spaces] == QLatin1Char(' ')) {
            ++spaces;
        }
        const QString before = line.left(textCursor().positionInBlock()).trimmed();
        spaces = std::min<qsizetype>(spaces, textCursor().positionInBlock());
        insertPlainText(QLatin1Char('\n') +
                        QString(spaces + (before.endsWith(QLatin1Char(':')) ? kIndent : 0), QLatin1Char(' ')));
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
}

} // namespace vitrine::ui
