// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "cmake/precompiled/qt_widgets.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
