// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An editor for attention programs: line numbers, colours of the language, the place of an error underlined, and a
// tinted line for what decides the pointed element. Tab indents; F6 leaves the editor.

#include <QPlainTextEdit>
#include <string>

namespace vitrine::ui {

class CodeColors;

class CodeEdit final : public QPlainTextEdit {
    Q_OBJECT

public:
    explicit CodeEdit(QWidget* parent = nullptr);
    ~CodeEdit() override;

    std::string text() const; ///< UTF-8
    /// Replaces everything; Undo brings back what was there. Nothing happens when it is there already.
    void setText(const std::string& text);

    /// Underlines a part (UTF-16 units); equal: nothing.
    void setProblem(qsizetype begin, qsizetype end);
    /// Puts the cursor there and takes the focus.
    void showProblem();
    /// A line from 1, in the colour of what blocks or allows; 0: none.
    void setTintedLine(int line, bool blocks);
    int tintedLine() const { return tinted_; }
    std::pair<qsizetype, qsizetype> problem() const { return {problemBegin_, problemEnd_}; }

    int gutterWidth() const;
    void paintGutter(QPaintEvent* event);

signals:
    void edited(); ///< by the user, Undo included

protected:
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void restyle();
    void mark();
    void placeGutter();
    void indent(bool out);

    QWidget* gutter_;
    CodeColors* colors_;
    qsizetype problemBegin_ = 0, problemEnd_ = 0;
    int tinted_ = 0;
    bool tintBlocks_ = true, setting_ = false;
};

} // namespace vitrine::ui
