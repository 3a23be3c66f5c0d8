// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A combo box that has its name inside, before what is chosen: "Device  H100 80 GB".

#include <QComboBox>
#include <QString>

namespace vitrine::ui {

class TextLabel;

class NamedCombo final : public QComboBox {
    Q_OBJECT

public:
    NamedCombo(const QString& name, bool editable, QWidget* parent);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    TextLabel* name_;
    int nameRoom_ = 0; ///< px
};

} // namespace vitrine::ui
