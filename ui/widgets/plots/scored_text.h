// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A text whose tokens are tinted by how much more or less likely a change has made them: negative in the colour of B,
// positive in that of A, in steps of 0.05, 0.1, 0.2 and 0.4 nats or of other sizes, underlined from the second step on.
// The keyboard walks from token to token.

#include <QTextLayout>
#include <functional>
#include <memory>
#include <vector>

#include "ui/models/precision/change_step.h"
#include "ui/widgets/base/scroll_plot.h"

namespace vitrine::ui {

class ScoredText final : public ScrollPlot {
    Q_OBJECT

public:
    struct Token {
        QString text;
        float change = 0; ///< nats
    };

    ScoredText(const QString& title, QWidget* parent);
    /// `spoken` gives the readout of a token.
    void setTokens(std::vector<Token> tokens, std::function<QString(int token)> spoken);
    /// The change of the last tint, in place of 0.4 nats; the other ones follow. `ends`: the legend says that of both
    /// ends and `what`, instead of all steps, and what lies above zero is underlined solid, not what lies below.
    void setScale(double largest, bool ends, const QString& what = {});
    int tokenCount() const { return static_cast<int>(tokens_.size()); }
    int currentToken() const { return current_; } ///< chosen with the keyboard or a click; -1: none
    void setCurrentToken(int token);              ///< scrolls to it
    /// First token in view and the one behind the last, [first, last).
    std::pair<int, int> inView() const;
    int tokenAt(QPointF position) const;          ///< in the widget; -1: none
    std::vector<QRectF> rectsOf(int token) const; ///< in the widget; several where it spans lines
    /// The next token before (-1) or behind (+1) the current one that changed by more than kLargeChange; -1: none.
    int nextLarge(int direction) const;
    QString spoken() const override;
    /// Without the legend, where another text beside it has the same one.
    void setLegendShown(bool shown);
    /// The height that it asks for: of so many lines. It takes what the text needs, and scrolls in less.
    void setUsualLines(int lines);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {usualLines_ > 0 ? 160 : 260, usualLines_ > 0 ? 24 : 90}; }

signals:
    void tokenShown(int token);  ///< under the pointer, else the current one; -1: none
    void viewChanged();          ///< other tokens are in view
    void tokenOpened(int token); ///< a double click, or Enter on the current one

protected:
    QRectF movingArea(const QSizeF& size) const override;
    QSizeF contentSize(const QSizeF& size) const override;
    void paintPlot(QPainter& painter, const QSizeF& size) const override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    static constexpr double kTextAir = 11; ///< left of text and legend, px
    /// Tokens up to a line break, or so many that laying them out stays cheap.
    struct Part {
        int first = 0, last = 0; ///< tokens, [first, last)
        std::unique_ptr<QTextLayout> layout;
        double top = 0; ///< in the content
    };
    void makeParts();
    void layOut();
    const Part* partOf(int token) const;
    std::vector<QRectF> contentRects(const Part& part, int token) const;
    void paintLegend(QPainter& painter, double width) const;
    void paintEndsLegend(QPainter& painter, double width) const;
    double inUnits(int token) const { return tokens_[static_cast<std::size_t>(token)].change / unit_; }
    void paintToken(QPainter& painter, const Part& part, int token, QPointF shift) const;
    void paintFrame(QPainter& painter, int token, double wide) const;
    int shownToken() const { return hovered_ >= 0 ? hovered_ : current_; }

    std::vector<Token> tokens_;
    std::function<QString(int)> spoken_;
    double unit_ = 1; ///< changes are tinted by how many of these they are
    bool ends_ = false, legend_ = true;
    int usualLines_ = 0; ///< 0: what a page of its own gives it
    QString what_;
    std::vector<int> begins_; ///< of each token in the text of its part
    std::vector<Part> parts_;
    double height_ = 0;
    int current_ = -1, hovered_ = -1;
    std::pair<int, int> view_{0, 0};
};

} // namespace vitrine::ui
