// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of files that are left out which the driver calls, and which have nothing to do here. Every other one
 * complains when it is called (driver/make-stubs). None of the driver's headers is included: what matters is the name.
 */
#include <linux/errno.h>

#define NOTHING_TO_DO(name) \
	long name(void);    \
	long name(void)     \
	{                   \
		return 0;   \
	}

/* The chip has no video BIOS, and the machine no ACPI methods for it. */
NOTHING_TO_DO(amdgpu_acpi_detect)
NOTHING_TO_DO(amdgpu_acpi_fini)
NOTHING_TO_DO(amdgpu_acpi_init)
NOTHING_TO_DO(amdgpu_acpi_release)
NOTHING_TO_DO(amdgpu_acpi_smart_shift_update)
NOTHING_TO_DO(amdgpu_acpi_is_set_uma_allocation_size_supported)
NOTHING_TO_DO(amdgpu_atombios_fini)
NOTHING_TO_DO(amdgpu_atombios_init)
NOTHING_TO_DO(amdgpu_atombios_scratch_need_asic_init)
NOTHING_TO_DO(amdgpu_atombios_sysfs_init)
NOTHING_TO_DO(amdgpu_i2c_fini)
NOTHING_TO_DO(amdgpu_atom_asic_init)
NOTHING_TO_DO(amdgpu_atomfirmware_asic_init)
NOTHING_TO_DO(amdgpu_bios_release)

/* No error correction, hence no counters of errors. */
NOTHING_TO_DO(amdgpu_atomfirmware_mem_ecc_supported)
NOTHING_TO_DO(amdgpu_atomfirmware_sram_ecc_supported)
NOTHING_TO_DO(amdgpu_psp_get_ras_capability)
NOTHING_TO_DO(amdgpu_umc_ras_sw_init)
NOTHING_TO_DO(amdgpu_nbio_is_replay_cnt_supported)
NOTHING_TO_DO(amdgpu_ras_check_bad_page_status)
NOTHING_TO_DO(amdgpu_ras_eeprom_check_and_recover)
NOTHING_TO_DO(amdgpu_uniras_enabled)

/* Neither power management, nor performance counters, nor video engines. */
NOTHING_TO_DO(amdgpu_pm_sysfs_init)
NOTHING_TO_DO(amdgpu_debugfs_pm_init)
NOTHING_TO_DO(is_support_sw_smu)
NOTHING_TO_DO(amdgpu_smu_early_init)
NOTHING_TO_DO(amdgpu_pmu_init)
NOTHING_TO_DO(amdgpu_pmu_fini)
NOTHING_TO_DO(amdgpu_uvd_entity_init)
NOTHING_TO_DO(amdgpu_vce_entity_init)
NOTHING_TO_DO(amdgpu_debugfs_jpeg_sched_mask_init)
NOTHING_TO_DO(amdgpu_debugfs_vcn_sched_mask_init)

/* No EEPROM with the board's name, and no security processor. */
NOTHING_TO_DO(amdgpu_fru_get_product_info)
NOTHING_TO_DO(amdgpu_fru_sysfs_init)
NOTHING_TO_DO(amdgpu_fru_sysfs_fini)
NOTHING_TO_DO(amdgpu_fw_attestation_debugfs_init)
NOTHING_TO_DO(amdgpu_rap_debugfs_init)
NOTHING_TO_DO(amdgpu_securedisplay_debugfs_init)
NOTHING_TO_DO(amdgpu_ta_if_debugfs_init)
NOTHING_TO_DO(amdgpu_psp_debugfs_init)
NOTHING_TO_DO(amdgpu_psp_wait_for_bootloader)
NOTHING_TO_DO(amdgpu_ptl_sysfs_init)
NOTHING_TO_DO(amdgpu_ptl_sysfs_fini)
/* Nothing was discovered, neither for a reset's report nor for sysfs. */
NOTHING_TO_DO(amdgpu_discovery_dump)
NOTHING_TO_DO(amdgpu_discovery_sysfs_fini)
NOTHING_TO_DO(amdgpu_discovery_sysfs_early_fini)
/* After a reset: the hive's links do not change, and nobody but the host is told of errors. */
NOTHING_TO_DO(psp_xgmi_set_topology_info)
NOTHING_TO_DO(amdgpu_vf_error_put)
NOTHING_TO_DO(amdgpu_vf_error_trans_all)

/* How memory is divided among partitions: the driver works it out where nobody says so. */
long amdgpu_discovery_get_nps_info(void);
long amdgpu_discovery_get_nps_info(void)
{
	return -EOPNOTSUPP;
}

/* Some chips are reset through power management. */
NOTHING_TO_DO(aldebaran_reset_init)
NOTHING_TO_DO(aldebaran_reset_fini)

/* Recommended values of registers, which are memory. */
NOTHING_TO_DO(soc15_program_register_sequence)
