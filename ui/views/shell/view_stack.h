// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// All views of the window, one of them shown, and the way back through those that were shown before.

#include <QStackedWidget>
#include <map>
#include <vector>

#include "ui/widgets/base/view.h"

namespace vitrine::ui {

class Rail;

class ViewStack final : public QStackedWidget {
    Q_OBJECT

public:
    /// Makes every view of the view list and gives each a button in the rail.
    ViewStack(const ViewServices& context, Rail* rail, QWidget* parent);
    ~ViewStack() override;
    ViewStack(const ViewStack&) = delete;
    ViewStack& operator=(const ViewStack&) = delete;

    const std::vector<View*>& views() const { return views_; }
    View* view(const QString& id) const; ///< null: there is none
    View* shown() const;

    /// "ID" or "ID/PAGE"; nothing happens where there is no such view.
    void open(const QString& place);
    void back();
    void forward();

signals:
    void leaving(View* view);  ///< another view is about to be shown
    void entering(View* view); ///< it is on top now and will be activated
    void entered();

private:
    void leave();
    void enter();
    void openExperiment(const QString& experimentJson);

    QAction* buttonOf(const QString& id) const; ///< in the rail

    ActionList* actions_;
    std::vector<View*> views_;
    std::map<QString, View*> byId_;
    std::map<QString, QString> railOf_; ///< views that are a page of another one
    std::vector<View*> visited_;        ///< in the order in which they were shown
    std::size_t visitedAt_ = 0;         ///< of them, the one that is shown
};

} // namespace vitrine::ui
