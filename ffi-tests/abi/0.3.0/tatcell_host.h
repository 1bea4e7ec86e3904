#include "../host_0_2.h"
