// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Bars of the main window: the rail of views, the run pickers and the crumbs of filters.

#include <QToolBar>
#include <QToolButton>
#include <vector>

#include "ui/widgets/base/view.h"

class QVBoxLayout;

namespace vitrine::ui {

/// A tool bar without a handle that draws the line at its inner edge.
class EdgeBar : public QToolBar {
    Q_OBJECT

public:
    EdgeBar(const QString& title, Qt::Edge line, QWidget* parent);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Qt::Edge line_;
};

/// The vertical list of views. Narrow: 48 wide, icons only.
class Rail final : public EdgeBar {
    Q_OBJECT

public:
    explicit Rail(QWidget* parent);
    void addView(QAction* action, const QString& title, const QString& icon);
    void setNarrow(bool narrow);
    bool narrow() const { return narrow_; }
    QAbstractButton* buttonOf(QAction* action) const;

private:
    QVBoxLayout* column_;
    std::vector<QToolButton*> buttons_;
    bool narrow_ = false;
};

/// [A run v]: a badge, the run's title and a menu of all runs.
class RunPicker final : public QToolButton {
    Q_OBJECT

public:
    RunPicker(QChar letter, SessionDocument* document, QWidget* parent);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {96, 26}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void refresh();
    void fillMenu();
    QChar letter_;
    SessionDocument* document_;
    QString title_;
    bool active_ = false;
};

/// All time > [Steps 2 and 3 x]: the filters that narrow all views; each can be removed.
class Crumbs final : public QWidget {
    Q_OBJECT

public:
    Crumbs(TimeCursor* time, QWidget* parent);

private:
    void rebuild();
    TimeCursor* time_;
};

} // namespace vitrine::ui
