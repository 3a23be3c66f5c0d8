// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A value of run A and one of run B behind their letters, for the right end of a lane's header.

#include <QWidget>

namespace vitrine::ui {

class PairFacts final : public QWidget {
    Q_OBJECT

public:
    explicit PairFacts(QWidget* parent);
    /// Without `both` there is no B, and A needs no letter.
    void setValues(const QString& a, const QString& b, bool both);
    QString text() const; ///< "A 0.758, B 0.674"
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString a_, b_;
    bool both_ = false;
};

} // namespace vitrine::ui
