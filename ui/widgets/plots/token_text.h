// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Text that a model writes, token by token: sections with a head, unlikely tokens underlined, facts of a token in a
// tool tip. Appending costs the same however long the text is: marks are drawn for what is visible only.

#include <QPlainTextEdit>
#include <span>
#include <vector>

#include "ui/models/common/run_controller.h"

namespace vitrine::ui {

class TokenText final : public QPlainTextEdit {
    Q_OBJECT

public:
    explicit TokenText(QWidget* parent = nullptr);

    void clearText();
    /// Starts a section. A dimmed one (thinking) can be folded by a click on its head.
    void addSection(const QString& title, bool dimmed);
    void appendText(const QString& text);
    /// Whether the view stays at the end while text comes, until the user scrolls away. On at first.
    void setFollowing(bool on) { following_ = on; }
    bool following() const { return following_; }
    /// Appends many at once; a new channel starts a section of its own.
    void appendTokens(std::span<const StreamedToken> tokens);

    std::size_t tokenCount() const { return marks_.size(); }
    /// The token under a point of the viewport; -1: none.
    int tokenAt(const QPoint& position) const;
    QString tokenTip(int token) const;
    QString sectionTitle(std::size_t index) const { return sections_[index].title; }
    std::size_t sectionCount() const { return sections_.size(); }
    bool folded(std::size_t index) const { return sections_[index].folded; }
    void setFolded(std::size_t index, bool on);
    /// The text as it was written, without heads and without line breaks that only make it faster to draw.
    QString plainText() const;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    QMimeData* createMimeDataFromSelection() const override;

private:
    struct Mark {
        int begin = 0, end = 0; ///< positions in the document
        int id = 0;
        float logprob = 0;
        float milliseconds = 0;
        std::vector<LikelyToken> likely;
    };
    struct Section {
        QString title, channel;
        bool dimmed = false, folded = false;
        int head = 0; ///< position of its head line
    };
    void insertAtEnd(const QString& text, bool head);
    /// `written` with breaks in lines that are too long; `at` is where it will stand.
    QString broken(const QString& written, int at);
    void recolor();
    void updateHead(std::size_t index);
    QString textWithoutSoftBreaks(int begin, int end) const;
    int endPosition() const;

    std::vector<Mark> marks_;
    std::vector<Section> sections_;
    std::vector<int> softBreaks_;
    double lastSeconds_ = 0;
    int lineLength_ = 0;
    bool following_ = true;
};

} // namespace vitrine::ui
